// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preparation decodes, checks and compiles the claims of pods before a scheduling cycle needs them.
//
// A [Store] keeps prepared claims for all profiles of a scheduler. Each profile has a [View] of the store, because a profile
// with upstream's allocator compiles no constraints. [Ahead] prepares claims in the background when a pod is queued. [AtOnce]
// prepares claims when they are looked up, for programs that can't wait between two pods, such as autoscalers.
package preparation
