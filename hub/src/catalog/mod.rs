//! Venues, performers, plans and their import, events, search.
