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

// mayUnshare returns an error if namespaces can't be created, which is often forbidden in a container. It tries to start a
// program that doesn't exist in new namespaces. If the error says that the program is missing, the namespaces could be created.
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
