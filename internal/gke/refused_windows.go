package gke

import "syscall"

// connectionRefused is that nobody listens: WSAECONNREFUSED.
const connectionRefused = syscall.Errno(10061)
