// Ends connections within a time limit: a hanging server does not answer the closing message, and a stop must not wait for
// it.

import { Socket } from 'node:net'
import type pg from 'pg'

/** The time limit for closing a connection, or for its last statement; a whole stop of a process may take 10 s. */
const endMsMax = 1_000

export interface TrackedSockets {
  /** The driver's option `stream`: creates the socket for each connection of a pool or a client. */
  readonly stream: () => Socket
  /**
   * Waits for `end`, and destroys connections that are still open at the limit. @throws what `end` throws within the limit.
   */
  endInTime(end: () => Promise<void>): Promise<void>
}

export function trackSockets(): TrackedSockets {
  const open = new Set<Socket>()
  return {
    stream: () => {
      const socket = new Socket()
      open.add(socket)
      socket.once('close', () => open.delete(socket))
      return socket
    },
    endInTime: async end => {
      const limit = Promise.withResolvers<void>()
      const timer = setTimeout(() => {
        for (const socket of open) socket.destroy()
        limit.resolve()
      }, endMsMax)
      try {
        await Promise.race([end(), limit.promise])
      } finally {
        clearTimeout(timer)
      }
    },
  }
}

/** Ends a connection, even a broken one, and ignores errors. */
export async function closeClientIgnoringErrors(client: pg.Client | undefined): Promise<void> {
  try {
    await client?.end()
  } catch {
    // Ending a broken connection fails with the same error as its last query. The query's caller already has this error,
    // and the socket is closed either way.
  }
}
