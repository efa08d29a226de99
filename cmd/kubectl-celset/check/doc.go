// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package check reports on the constraints of claims, templates and device classes before
// anybody waits for them: whether they are found and compile, what they read, what an
// evaluation may cost, how many sets of devices there are, and what the search can tell of
// a conjunct before a set is complete. It uses the code of the scheduler for all of that.
//
//	report, err := check.Run(ctx, state, check.Options{Count: 4, Features: features})
//	report.Valid()       // nothing is wrong
//	report.Print(os.Stdout)
package check
