// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app implements the command celset-scheduler: kube-scheduler with the plugin DynamicResourcesCEL. It also reports events
// of the scheduling queue to the plugin's guard.
//
// kube-scheduler's own command accepts plugins only. So this command is built from the same parts: its options, Setup and Run.
package app
