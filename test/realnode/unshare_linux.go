// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// mayUnshare tries it: root in a container may often not. The program to start does
// not exist; that it is looked for shows that there is a process that could run it.
func mayUnshare() error {
	process, err := os.StartProcess("/proc/no-such-program", []string{"probe"}, &os.ProcAttr{
		Sys: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID},
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("a node that runs containers needs namespaces of its own: %w", err)
	}
	_, err = process.Wait()
	return err
}
