// Looks for a server that does not answer, and brings the screens up to date when it does again.

import { call } from './client.ts'
import { readConnection, watchConnection } from './connection.ts'

const waitMs = { first: 1_000, most: 8_000 }
const answerMsMax = 5_000

/** @param onBack is called when the server answers again, since the data on the screen may be out of date by then. */
export function recoverFromOutages(onBack: () => void): void {
  let isAway = false
  watchConnection(() => {
    const wasAway = isAway
    isAway = readConnection().awaySinceMs !== null
    if (isAway && !wasAway) void lookUntilBack()
    if (!isAway && wasAway) onBack()
  })

  async function lookUntilBack(): Promise<void> {
    for (let ms = waitMs.first; isAway; ms = Math.min(ms * 1.5, waitMs.most)) {
      // So that not all tabs ask at once.
      await new Promise(resolve => setTimeout(resolve, ms * (0.5 + Math.random() / 2)))
      // Nobody looks at a hidden tab; it asks when it is shown again.
      if (isAway && !document.hidden)
        await call('GET /api/session/', { signal: AbortSignal.timeout(answerMsMax) }).catch(() => undefined)
    }
  }
}
