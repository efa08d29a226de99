// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serve serves the web page about devices to the browsers of one user, on the loopback interface:
//
//	listener, err := serve.Listen(ctx, "127.0.0.1", 0)
//	server, err := serve.New(listener, serve.Options{Answers: answers, Changes: source})
//	fmt.Println(server.URL()) // http://127.0.0.1:PORT/#token=TOKEN
//	err = server.Run(ctx)
//
// # Requests
//
//   - GET / and the files of the page need no token, because they have no data.
//   - POST /answers/NAME asks a question of package answers. The body is the question, as JSON.
//   - GET /events streams a line "data: {"revision":"…"}" whenever the objects change.
//
// Questions and events need the header "Authorization: Bearer TOKEN". The token is random, and the URL has it in the fragment,
// which browsers send to no server. A refusal has the body {"error": "…"}.
//
// # Other pages and users
//
// Other users of the machine can connect to the port, and pages of other sites can make the browser connect. So a request is
// refused in these cases, even with the token:
//
//   - Its Host is no name of the loopback interface with the port. A page whose name was rebound to 127.0.0.1 has another Host.
//   - Its Origin is another origin, or Sec-Fetch-Site says that another site or another port sent it.
//   - A question is not sent as application/json. Without CORS headers, other pages can't send this type.
//
// The server never sends CORS headers, so pages of other sites can't read answers.
package serve
