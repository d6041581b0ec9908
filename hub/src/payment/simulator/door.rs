//! The listening socket, which a rule may shut: connections are refused then, as of a machine where nobody listens.

use std::{io, time::Duration};

use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;
/// Out of descriptors: some have to come back first.
const PAUSE: Duration = Duration::from_millis(50);

pub enum Door {
    Open(TcpListener),
    /// The address is kept, and nobody listens at it.
    Shut(TcpSocket),
}

impl Door {
    pub fn is_shut(&self) -> bool {
        matches!(self, Door::Shut(_))
    }

    /// The next connection; none comes through a door that is shut.
    pub async fn accept(&mut self) -> TcpStream {
        loop {
            match self {
                Door::Shut(_) => std::future::pending().await,
                Door::Open(listener) => match listener.accept().await {
                    Ok((socket, _)) => {
                        let _ = socket.set_nodelay(true);
                        return socket;
                    }
                    Err(_) => tokio::time::sleep(PAUSE).await,
                },
            }
        }
    }

    /// Shut or open, as it is to be. Connections that waited to be accepted are refused with it.
    pub fn turn(self, shut: bool) -> io::Result<Self> {
        match (self, shut) {
            (Door::Open(listener), true) => {
                let address = listener.local_addr()?;
                drop(listener);
                let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
                socket.set_reuseaddr(true)?;
                socket.bind(address)?; // bound and not listening: nobody else gets the address meanwhile
                Ok(Door::Shut(socket))
            }
            (Door::Shut(socket), false) => Ok(Door::Open(socket.listen(BACKLOG)?)),
            (door, _) => Ok(door),
        }
    }
}
