// The response that an export is written to: gzip if requested, a digest of all bytes, and, if the export breaks off,
// an end that no client can mistake for completion.

import { createHash } from 'node:crypto'
import { type EventEmitter, once } from 'node:events'
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { constants, createGzip, type Gzip } from 'node:zlib'
import { releaseBytesMemory } from '#core/release-bytes.ts'
import type { ExportSlot } from '#services/exports/export-slots.ts'
import { ExportStopped, type ExportTarget } from '#services/exports/run-export.ts'
import { waitOrStop } from '#services/shared/wait-or-stop.ts'
import { exemptFromStallLimit } from '../../answers/answer-budget.ts'

export interface ExportResponse extends ExportTarget {
  /** Completes the response. Resolves when the system has taken all of it. */
  end(trailers: Readonly<Record<string, string>>): Promise<void>
  /** Sends the last text, if any, and destroys the connection. */
  breakOff(lastText: string | null): Promise<void>
}

/** A reader that takes nothing for this long counts as disconnected, and another export may take its place. */
const stuckMs = 120_000
/** How long a broken export waits until its last text is sent. */
const lastTextMs = 2_000
const trailerNames = ['content-digest', 'pennon-export-count', 'pennon-export-cursor', 'pennon-export-next']

export interface OpenResponseOptions {
  readonly headers: OutgoingHttpHeaders
  readonly isGzip: boolean
  /** Aborted when the connection ends. */
  readonly signal: AbortSignal
  readonly place: Pick<ExportSlot, 'signal' | 'waitForReader'>
  readonly stuckMs?: number
}

export function openExportResponse(response: ServerResponse, options: OpenResponseOptions): ExportResponse {
  const { headers, isGzip, signal, place } = options
  exemptFromStallLimit(response)
  // HTTP/1.0, nginx's default for upstreams, has neither chunked bodies nor trailers.
  const hasTrailers = response.req.httpVersion !== '1.0'
  response.writeHead(200, {
    ...headers,
    ...(isGzip && { 'content-encoding': 'gzip' }),
    ...(hasTrailers && { trailer: trailerNames.join(', ') }),
  })
  const digest = createHash('sha256')
  const hashAndWrite = (bytes: Uint8Array): boolean => {
    digest.update(bytes)
    return response.write(bytes, error => {
      if (!error) releaseBytesMemory(bytes)
    })
  }
  const gzip = isGzip ? createGzipInto(response, hashAndWrite) : null
  const first: ServerResponse | Gzip = gzip ?? response

  /** Waits for an event that shows that the reader has taken more. */
  async function waitForReader(stream: EventEmitter, event: 'drain' | 'end' | 'finish'): Promise<void> {
    const late = AbortSignal.timeout(options.stuckMs ?? stuckMs)
    const endWait = place.waitForReader()
    try {
      await once(stream, event, { signal: AbortSignal.any([signal, place.signal, late]) })
    } catch (error) {
      signal.throwIfAborted()
      place.signal.throwIfAborted()
      throw late.aborted ? new ExportStopped('too_slow') : error
    } finally {
      endWait()
    }
  }

  return {
    async write(bytes) {
      signal.throwIfAborted()
      if (bytes.length === 0) return
      // Sends the bytes even if another export took this export's place: the closing error's cursor is after these rows.
      const canWriteMore = gzip === null ? hashAndWrite(bytes) : gzip.write(bytes)
      place.signal.throwIfAborted()
      if (!canWriteMore) await waitForReader(first, 'drain')
    },
    flush() {
      gzip?.flush(constants.Z_SYNC_FLUSH)
    },
    async end(trailers) {
      if (gzip !== null) {
        gzip.end()
        await waitForReader(gzip, 'end')
      }
      const sums = { 'content-digest': `sha-256=:${digest.digest('base64')}:` }
      if (hasTrailers) response.addTrailers({ ...sums, ...trailers })
      response.end()
      await waitForReader(response, 'finish')
    },
    async breakOff(lastText) {
      // Sends the last text only if the file has not ended: nothing may follow its end.
      if (!signal.aborted && !first.writableEnded) {
        // Flushes rows still buffered for the response; otherwise the client would miss rows that were already read from
        // the store.
        const isOut = new Promise<void>(resolve => {
          if (gzip === null) response.write(lastText ?? '', () => resolve())
          else {
            gzip.write(lastText ?? '')
            gzip.flush(constants.Z_SYNC_FLUSH, () => response.write('', () => resolve()))
          }
        })
        const late = new AbortController()
        await Promise.race([isOut, waitOrStop(lastTextMs, late.signal)])
        late.abort()
      }
      // Without the last chunk every HTTP client reports a broken transfer. With HTTP/1.0, where the end of a connection is
      // the end of a body, only a reset makes a client report this.
      if (hasTrailers) response.destroy()
      else response.socket?.resetAndDestroy()
      gzip?.destroy()
    },
  }
}

/** @param send returns false when the writer must wait for the reader. */
function createGzipInto(response: ServerResponse, send: (bytes: Uint8Array) => boolean): Gzip {
  const gzip = createGzip({ level: constants.Z_BEST_SPEED })
  gzip.on('data', (bytes: Buffer) => {
    if (!send(bytes)) gzip.pause()
  })
  response.on('drain', () => gzip.resume())
  return gzip
}

/** Whether the header accepts gzip: by name or `*`, and not with `q=0`. */
export function acceptsGzip(acceptEncoding: string | undefined): boolean {
  const codings = new Map(
    (acceptEncoding ?? '').split(',').map(part => {
      const [name = '', ...params] = part.split(';').map(text => text.trim().toLowerCase())
      return [name, !params.some(param => /^q=0(\.0{0,3})?$/.test(param))]
    }),
  )
  return codings.get('gzip') ?? codings.get('*') ?? false
}
