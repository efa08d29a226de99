// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"strings"
	"sync"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// A time zone is read from a file each time that its name is used, which takes as long as
// hundreds of other calls. So those that there are are kept. What is not the plain name of
// one, and so might be one of any number of ways to write it, is not.

// mostZones is how many zones are kept. There are some 600, thrice.
const mostZones = 2048

var zones = struct {
	sync.RWMutex
	known map[string]*time.Location
}{known: map[string]*time.Location{}}

// loadZone returns the time zone of a name, as CEL understands it.
func loadZone(name string) (*time.Location, error) {
	zones.RLock()
	known := zones.known[name]
	zones.RUnlock()
	if known != nil {
		return known, nil
	}
	loaded, err := time.LoadLocation(name)
	if err != nil || !isPlainZone(name) {
		return loaded, err
	}
	zones.Lock()
	defer zones.Unlock()
	if len(zones.known) < mostZones {
		// The name is often a part of a longer text.
		zones.known[strings.Clone(name)] = loaded
	}
	return loaded, nil
}

// isPlainZone reports whether a text is written as the names of zones are.
func isPlainZone(name string) bool {
	const longest = 64
	if name == "" || len(name) > longest || name[0] == '/' || name[len(name)-1] == '/' || strings.Contains(name, "//") {
		return false
	}
	return strings.IndexFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("_+-/", c)
	}) < 0
}

// isKept reports whether a zone costs nothing to look up. One that is needed for the first time is
// read.
func isKept(name string) bool {
	if name == "" || name == "UTC" || strings.Contains(name, ":") {
		return true // it needs no file
	}
	if !isPlainZone(name) {
		return false
	}
	_, err := loadZone(name)
	return err == nil
}

// inKeptZone reads a part of a timestamp as it is in a zone that is kept. nil if there is nothing
// of that kind to read.
func inKeptZone(of *call, values []ref.Val) ref.Val {
	if len(values) < 2 {
		return nil
	}
	at, isTimestamp := values[0].(types.Timestamp)
	name, isName := values[1].(types.String)
	if !isTimestamp || !isName || !isPlainZone(string(name)) {
		return nil
	}
	zone, err := loadZone(string(name))
	if err != nil {
		return nil
	}
	return types.Timestamp{Time: at.In(zone)}.Receive(of.Function(), "", nil)
}
