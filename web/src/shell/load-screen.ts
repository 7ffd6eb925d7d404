import { lazyRouteComponent } from '@tanstack/react-router'
import { ApiError, call } from '../api/client.ts'

const reloadedKey = 'pennon-reloaded-for'

/** A screen whose files are loaded when it is first opened. */
export const loadScreen: typeof lazyRouteComponent = (load, ...name) =>
  lazyRouteComponent(() => load().catch(explainFailure), ...name)

/** Either the server does not answer, or it has been updated and no longer has the files of this build. */
async function explainFailure(error: unknown): Promise<never> {
  try {
    await call('GET /api/session/')
  } catch (cause) {
    if (cause instanceof ApiError && cause.status === 0) throw cause
  }
  if (!isReloaded()) {
    location.reload()
    await new Promise(() => undefined)
  }
  throw error
}

/** Whether the page was reloaded for this address already; it may not help. */
function isReloaded(): boolean {
  try {
    if (sessionStorage.getItem(reloadedKey) === location.href) return true
    sessionStorage.setItem(reloadedKey, location.href)
    return false
  } catch {
    return true // without storage it cannot be known
  }
}
