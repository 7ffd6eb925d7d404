// Ends connections within a time limit: a hanging server does not answer the farewell, and a stop must not wait for it.

import { Socket } from 'node:net'
import type pg from 'pg'

/** Limit for a connection's farewell or last statement; a stop has 10 s for everything. */
const endMsMax = 1_000

export interface TrackedSockets {
  /** The driver's option of that name: makes the socket for each connection of a pool or a client. */
  readonly stream: () => Socket
  /**
   * Waits for `end`, and cuts connections that are still open at the limit. @throws what `end` throws within the limit.
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

/** Ends a connection, which may be broken. */
export async function endIgnoringErrors(client: pg.Client | undefined): Promise<void> {
  try {
    await client?.end()
  } catch {
    // A broken connection ends with the error that its last query was rejected with: its caller has that already, and
    // the socket is closed either way.
  }
}
