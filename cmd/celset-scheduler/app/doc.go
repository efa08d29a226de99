// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app is celset-scheduler as a command: kube-scheduler with the plugin
// DynamicResourcesCEL registered, and the scheduling queue shown to its guard.
//
// kube-scheduler's own command takes plugins and nothing else, so this one is made of the same
// parts: its options, Setup and Run.
package app
