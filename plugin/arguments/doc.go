// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package arguments decodes the arguments of the plugin, for upstream's plugin too. It also combines those arguments of the
// profiles that apply to the whole scheduler.
package arguments
