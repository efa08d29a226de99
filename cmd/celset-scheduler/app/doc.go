// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app implements the command celset-scheduler: kube-scheduler with the plugin DynamicResourcesCEL. It also gives the
// plugin's fairness guard access to the scheduling queue and to the scheduler's loop.
//
// kube-scheduler's own command accepts plugins only. So this command is built from the same parts: its options, Setup and Run.
package app
