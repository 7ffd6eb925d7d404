// The end of connections within a limit: a server that hangs answers no goodbye, and a stop waits for nobody that long.

import { Socket } from 'node:net'
import type pg from 'pg'

/** Its farewell or its last statement may take this long; a stop has 10 s for everything. */
const endMsMax = 1_000

export interface TrackedSockets {
  /** The driver's option of that name: where each connection of a pool or a client gets its socket from. */
  readonly stream: () => Socket
  /** Waits for `end`, and cuts what is still open when it takes longer. @throws what `end` throws within the limit. */
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

/** A connection that is broken says so once more at its end; nothing hangs on that, its work has failed already. */
export async function endQuietly(client: pg.Client | undefined): Promise<void> {
  await client?.end().catch(() => undefined)
}
