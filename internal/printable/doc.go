// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package printable makes texts of others harmless for terminals and logs.
//
// Anybody may write an object or an error message that contains control characters. A terminal obeys them: they move the
// cursor, change colors, or write to the clipboard. This package replaces such a character by its escape sequence in Go,
// so that a reader sees it and the terminal does not.
//
//	out := printable.NewWriter(os.Stdout)
//	klog.ErrorS(printable.Error(err), "The hub refused the score")
package printable
