package kube

import "syscall"

// cutOffs are what the system says of a connection that ended.
var cutOffs = []error{syscall.WSAECONNRESET, syscall.WSAECONNABORTED}
