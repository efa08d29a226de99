// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watchdog is for what nobody foresaw: a scheduling cycle that does not end. The
// scheduler tries one pod after the other, so nothing is scheduled then, and nothing else
// shows it.
//
// A [Watchdog] is told when cycles begin and end, whatever the profile and the pod, and its
// Check fails when one makes no progress. The program has its /livez fail with it, so that
// the kubelet restarts it.
package watchdog
