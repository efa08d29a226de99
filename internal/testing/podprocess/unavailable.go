// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package podprocess

import (
	"fmt"

	"github.com/celset/celset/internal/realnode"
)

// Unavailable returns nil if pods can run on this machine, and else the reason why they can't.
func Unavailable() error {
	if err := realnode.Unavailable(); err != nil {
		return fmt.Errorf("pods can't run: %w", err)
	}
	return nil
}
