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

// When a time zone is used, Go reads it from a file each time, which takes as long as hundreds of other calls. So this file
// caches zones by name. It caches only plain names, because a zone can be named in unlimited other ways.

// mostZones is the maximum number of cached zones. There are some 600 zones, in three variants.
const mostZones = 2048

var zones = struct {
	sync.RWMutex
	known map[string]*time.Location
}{known: map[string]*time.Location{}}

// loadZone returns the time zone with the name, as CEL interprets it.
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
		// Clone the name. It is often a part of a longer text, which the cache would otherwise keep in memory.
		zones.known[strings.Clone(name)] = loaded
	}
	return loaded, nil
}

// isPlainZone reports whether the text has the form of a zone name.
func isPlainZone(name string) bool {
	const longest = 64
	if name == "" || len(name) > longest || name[0] == '/' || name[len(name)-1] == '/' || strings.Contains(name, "//") {
		return false
	}
	return strings.IndexFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("_+-/", c)
	}) < 0
}

// isCachedZone loads a zone into the cache if necessary. It reports whether later uses of the zone read no file.
func isCachedZone(name string) bool {
	if name == "" || name == "UTC" || strings.Contains(name, ":") {
		return true // These zones need no file.
	}
	if !isPlainZone(name) {
		return false
	}
	_, err := loadZone(name)
	return err == nil
}

// inCachedZone calls a function of a timestamp with the cached zone. It returns nil if the zone has no plain name.
func inCachedZone(of *call, values []ref.Val) ref.Val {
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
