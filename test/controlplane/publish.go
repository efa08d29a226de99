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

// publish makes public the same file as built, at once. `go build` replaces its
// output instead of overwriting it, so the two are one file until it has
// something new.
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

// lockFile takes the lock on a file, created if need be, waiting until the
// context ends. Closing the result releases it, as does the end of the process.
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
