// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deadline limits the time of evaluations. A [Deadline] is the cause of a context that ends because of such a limit,
// not because the program stops. A [Timer] limits each of several successive evaluations.
package deadline
