// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package allocator

const detectsRaces = true
