// A GET by node:http, which shows what `fetch` hides: trailers, the exact bytes, and whether the body was complete.

import { type IncomingHttpHeaders, request } from 'node:http'

export interface Download {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly trailers: NodeJS.Dict<string>
  readonly bytes: Buffer
  /** Whether the response ended as HTTP requires; otherwise it was cut off. */
  readonly isComplete: boolean
}

export function download(url: string, headers: Readonly<Record<string, string>> = {}): Promise<Download> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { headers, agent: false }, response => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', () => undefined)
      response.on('close', () =>
        resolve({
          status: response.statusCode!,
          headers: response.headers,
          trailers: response.trailers,
          bytes: Buffer.concat(chunks),
          isComplete: response.complete,
        }),
      )
    })
    sent.on('error', reject)
    sent.end()
  })
}
