// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redteam has what somebody would write who wants to stop celset for everybody
// else, and who may write in one namespace only, or who reports for one managed cluster.
//
//	for _, c := range redteam.Cases() {
//		c.Text // an expression, a request or a quantity
//		c.Where // what it can be written into
//		c.Attack, c.Why // what it is after, and how
//	}
//
// Each case was seen to take seconds or gigabytes, or to end the program, in CEL as it
// is, or it is there because one like it was. Cases that CEL itself refuses are kept if
// an update of CEL could accept them. Nobody expects an answer to any of them: what is
// expected is that there is one soon, or an error, and that it takes little memory.
//
// The package has only texts: what they do is measured by its tests in a process of their
// own, and in whole programs by test/redteam.
package redteam
