// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package check reports on the constraints of claims, templates and device classes before anyone uses them. It reports whether
// they are defined and compile, what they read, the cost of an evaluation, the number of sets of devices, and how early the
// search can use each conjunct. It uses the scheduler's code for all of this.
//
//	report, err := check.Run(ctx, state, check.Options{Count: 4, Features: features})
//	report.Valid()       // nothing is wrong
//	report.Print(os.Stdout)
package check
