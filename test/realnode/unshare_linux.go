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

// mayUnshare tries to create namespaces, which root in a container often may not. The program does not exist: an error about the
// missing program shows that a process was created in new namespaces.
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
