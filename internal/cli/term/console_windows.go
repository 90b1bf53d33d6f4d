package term

import "syscall"

var setConsoleMode = syscall.NewLazyDLL("kernel32.dll").NewProc("SetConsoleMode")

// processEscapes lets a console read escapes instead of showing them
// (ENABLE_VIRTUAL_TERMINAL_PROCESSING); older ones do not by themselves.
const processEscapes = 0x4

// readsEscapes makes the console behind fd read escapes, if it can.
func readsEscapes(fd int) bool {
	console := syscall.Handle(fd)
	var mode uint32
	if syscall.GetConsoleMode(console, &mode) != nil {
		return false
	}
	if mode&processEscapes != 0 {
		return true
	}
	ok, _, _ := setConsoleMode.Call(uintptr(console), uintptr(mode|processEscapes))
	return ok != 0
}
