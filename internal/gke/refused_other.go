//go:build !windows

package gke

import "syscall"

// connectionRefused is that nobody listens.
const connectionRefused = syscall.ECONNREFUSED
