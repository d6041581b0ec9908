//! Who is of the staff, said by operators.

use axum::{Json, extract::State, http::StatusCode};
use fullhouse_protocol::clerk::{NewStaffMember, StaffMember, StaffMemberChange, StaffMembers};
use uuid::Uuid;

use super::{
    extract::{Body, Operator, PathId},
    problem::{Code, Problem},
    staff::{operator_name, said},
    terminals::checked_name,
};
use crate::auth::{Actor, Auth, StaffError};

/// All members of the staff.
#[utoipa::path(get, path = "/api/staff/members", tag = "staff",
    responses((status = 200, body = StaffMembers), (status = "4XX", description = "`forbidden`")))]
pub async fn members(State(auth): State<Auth>, _: Operator) -> Result<Json<StaffMembers>, Problem> {
    Ok(Json(StaffMembers { members: auth.members().list().await? }))
}

/// Somebody new, with a role and a password, and a PIN if they are to have one.
#[utoipa::path(post, path = "/api/staff/members", tag = "staff", request_body = NewStaffMember,
    responses((status = 201, body = StaffMember), (status = "4XX", description = "`forbidden`, `bad_request`, `name_taken`")))]
pub async fn add_member(
    State(auth): State<Auth>,
    Operator(operator): Operator,
    Body(body): Body<NewStaffMember>,
) -> Result<(StatusCode, Json<StaffMember>), Problem> {
    let new = NewStaffMember { name: checked_name(&body.name)?, reason: said(&body.reason)?, ..body };
    let staff_id = auth.members().add(new, Actor::person(operator_name(&operator))).await?;
    Ok((StatusCode::CREATED, Json(one(&auth, staff_id).await?)))
}

/// Gives somebody another role, password or PIN, or lets them sign in no more (or again). It ends their sessions.
#[utoipa::path(post, path = "/api/staff/members/{id}", tag = "staff", request_body = StaffMemberChange,
    params(("id" = Uuid, Path)),
    responses((status = 200, body = StaffMember), (status = "4XX", description = "`forbidden`, `bad_request`, `staff_unknown`")))]
pub async fn change_member(
    State(auth): State<Auth>,
    Operator(operator): Operator,
    PathId(staff_id): PathId<Uuid>,
    Body(body): Body<StaffMemberChange>,
) -> Result<Json<StaffMember>, Problem> {
    let change = StaffMemberChange { reason: said(&body.reason)?, ..body };
    auth.members().change(staff_id, change, Actor::person(operator_name(&operator))).await?;
    Ok(Json(one(&auth, staff_id).await?))
}

async fn one(auth: &Auth, staff_id: Uuid) -> Result<StaffMember, Problem> {
    let all = auth.members().list().await?;
    all.into_iter().find(|member| member.staff_id == staff_id).ok_or_else(|| Code::StaffUnknown.into())
}

impl From<StaffError> for Problem {
    fn from(error: StaffError) -> Self {
        match error {
            StaffError::Unknown => Code::StaffUnknown.into(),
            StaffError::NameTaken => Code::NameTaken.into(),
            StaffError::Invalid(what) => Problem::new(Code::BadRequest).detail(what),
            StaffError::Busy => Code::Busy.into(),
            StaffError::Hash(error) => Problem::internal(error),
            StaffError::Database(error) => error.into(),
        }
    }
}
