// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"os"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

// publish atomically makes public a hard link to the file built. It does nothing if both paths are already the same file. `go
// build` creates a new file instead of changing the old one, so the published file never changes.
func publish(built, public string) error {
	from, err := os.Stat(built)
	if err != nil {
		return err
	}
	if to, err := os.Stat(public); err == nil && os.SameFile(from, to) {
		return nil
	}
	next := built + ".next"
	if err := os.RemoveAll(next); err != nil {
		return err
	}
	if err := os.Link(built, next); err != nil {
		return err
	}
	return os.Rename(next, public)
}

// lockFile locks a file, and creates it if needed. It waits until the lock is free or the context ends. The lock is released
// when the result is closed or the process ends.
func lockFile(ctx context.Context, path string) (*fileutil.LockedFile, error) {
	const retry = 100 * time.Millisecond
	for {
		lock, err := tryLockFile(path)
		if !errors.Is(err, fileutil.ErrLocked) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(retry):
		}
	}
}

func tryLockFile(path string) (*fileutil.LockedFile, error) {
	return fileutil.TryLockFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
}
