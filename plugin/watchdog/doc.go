// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watchdog is for what nobody foresaw: a scheduling cycle that does not end. The
// scheduler tries one pod after the other, so nothing is scheduled then, and nothing else
// shows it.
//
// A [Watchdog] is told when cycles begin and end, whatever the profile and the pod, and its
// Check fails when one makes no progress. The program has its /livez fail with it, so that
// the kubelet restarts it.
//
// After that the same pod would be the first to be tried again. So an attempt that takes long
// is written down ([Journal]) until it ends, and whoever schedules next puts the pods off of
// which it reads that their attempts did not end.
package watchdog
