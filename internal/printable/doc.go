// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package printable makes texts of unknown origin harmless for terminals and logs.
//
// The author of an object or of an error message may have put control characters into it. A terminal executes control
// characters: they move the cursor, change colors, or write to the clipboard. This package replaces each of them by its Go
// escape sequence, which is visible and harmless.
//
//	out := printable.NewWriter(os.Stdout)
//	klog.ErrorS(printable.Error(err, 200), "The hub refused the score")
package printable
