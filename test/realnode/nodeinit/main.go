// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Nodeinit is the first process in the mount namespace and the PID namespace of a node or a pod for tests. The kubelet,
// containerd and their children, or the program of the pod, run in these namespaces. When nodeinit ends, the kernel kills them
// and removes their mounts.
//
//	nodeinit <ready file> <private directory> <host directory>...
//
// The kubelet and containerd write to the host directories regardless of their configuration. In the namespace, nodeinit mounts
// a folder of the private directory over each of them. The ready file appears when everything is mounted.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGCHLD)
	if err := run(os.Args[1:], signals); err != nil {
		fmt.Fprintf(os.Stderr, "nodeinit: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string, signals <-chan os.Signal) error {
	if len(args) < 2 {
		return errors.New("usage: nodeinit <ready file> <private directory> <host directory>, any number of those")
	}
	if os.Getpid() != 1 {
		// If it is not in a new namespace, nodeinit would change the mounts of the machine.
		return errors.New("not the first process of a PID namespace")
	}
	ready, private, hostDirs := args[0], args[1], args[2:]
	if err := mountAll(private, hostDirs); err != nil {
		return err
	}
	if err := os.WriteFile(ready, nil, 0o600); err != nil {
		return err
	}
	for received := range signals {
		if received != unix.SIGCHLD {
			return nil
		}
		reap()
	}
	return nil
}

func mountAll(private string, hostDirs []string) error {
	// Make all mounts private, so that later mounts are not visible outside of this namespace.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	for _, dir := range hostDirs {
		source := filepath.Join(private, strings.ReplaceAll(strings.Trim(dir, "/"), "/", "-"))
		for _, path := range []string{source, dir} {
			if err := os.MkdirAll(path, 0o755); err != nil {
				return err
			}
		}
		if err := unix.Mount(source, dir, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s: %w", dir, err)
		}
	}
	return nil
}

// reap waits for processes whose parents have ended. Such orphans become children of the first process. One signal can announce
// several ended orphans, so reap repeats until no ended orphan is left.
func reap() {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid == 0 {
			return
		}
	}
}
