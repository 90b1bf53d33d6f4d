//go:build !linux && !darwin && !freebsd

package process

import (
	"errors"
	"os/exec"
	"runtime"
	"syscall"
)

// supported refuses where children cannot be kept from outliving us.
func supported() error {
	return errors.New("the sandbox needs Linux or macOS, this is " + runtime.GOOS + ": use a Linux machine, a container or WSL")
}

func attributes() *syscall.SysProcAttr { return nil }

func spawn(*exec.Cmd) error { return supported() }

func killGroup(int, syscall.Signal) error { return supported() }

func startTime(int) (string, error) { return "", supported() }

func ended(int) bool { return true }
