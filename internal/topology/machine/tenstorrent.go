// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"

	"github.com/celset/celset/internal/topology"
)

const tenstorrentDriver = "tenstorrent.com"

func tenstorrentMachines() []Machine {
	return []Machine{{
		Name: "tenstorrent", Title: "4 Tenstorrent boards of two chips, whose coordinates are not published",
		devices: tenstorrentBoards, classes: sameName(tenstorrentDriver),
	}}
}

// tenstorrentBoards are allocated as a whole: one chip of each is reached through the other.
func tenstorrentBoards(string) []topology.Device {
	const boards, chipsPerBoard = 4, 2
	var devices []topology.Device
	for i := range boards {
		devices = append(devices, topology.Device{
			Driver: tenstorrentDriver, Name: fmt.Sprintf("board-%d", i),
			Attributes: attributes{
				"boardName": text("n300"),
				"chipArch":  text("wormhole"),
				"chipCount": number(chipsPerBoard),
				"trayID":    number(i),
			},
		})
	}
	return devices
}
