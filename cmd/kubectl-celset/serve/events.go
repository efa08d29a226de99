// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	// maxStreams is the maximum number of event streams. A browser opens at most six connections to a server, so two
	// connections stay free for questions.
	maxStreams = 4
	// sendTime is the time limit to send one event.
	sendTime = 10 * time.Second
)

var errStreams = fmt.Errorf("%d event streams are open: close other tabs with this page", maxStreams)

// stream sends the current revision, and then each new revision, until the client or the server ends.
func (s *Server) stream(w http.ResponseWriter, request *http.Request) {
	defer s.streams.Add(-1)
	if s.streams.Add(1) > maxStreams {
		refuse(w, http.StatusTooManyRequests, errStreams)
		return
	}
	controller := http.NewResponseController(w)
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	for {
		revision, changed := s.Changes.Revision()
		event, _ := json.Marshal(map[string]string{"revision": revision})
		if controller.SetWriteDeadline(time.Now().Add(sendTime)) != nil {
			return
		}
		if _, err := fmt.Fprintf(w, "data: %s\n\n", event); err != nil || controller.Flush() != nil {
			return
		}
		select {
		case <-request.Context().Done():
			return
		case <-changed:
		}
	}
}
