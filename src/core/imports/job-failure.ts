// Why publishing or discarding an import job makes no progress, told to those who wait for it.

/** When the worker's attempts began to fail, and why the last one failed. */
export interface JobFailure {
  /** A store and its problem, such as `event_store_unavailable`; or `internal_error`. */
  readonly code: string
  /** Epoch ms. */
  readonly sinceMs: number
}

const stores = {
  event_store: 'the event store',
  state: 'the database of the state',
  event_log: 'the log of accepted events',
} as const

const troubles = {
  unavailable: 'cannot be reached',
  timeout: 'does not answer in time',
  conflict: 'had a conflicting write on every try',
  corrupt: 'has data that cannot be read',
  full: 'has too little space or memory for it',
} as const

/** The code for a failed store. @param port the store, by the name that adapters use, such as `event-store`. */
export function formatStoreFailureCode(port: string, trouble: keyof typeof troubles): string {
  const store = port.replaceAll('-', '_')
  return Object.hasOwn(stores, store) ? `${store}_${trouble}` : internalError
}

/** Any other failure. Only the instance's log has its details: they may contain data that clients must not see. */
export const internalError = 'internal_error'

const messages: ReadonlyMap<string, string> = new Map([
  ...Object.entries(stores).flatMap(([store, name]) =>
    Object.entries(troubles).map(([trouble, what]) => [`${store}_${trouble}`, `${name} ${what}`] as const),
  ),
  [internalError, 'an internal error occurred, see the instance’s log'],
])

/** The failure in words, as a clause such as `the event store cannot be reached`. */
export function formatJobFailure(code: string): string {
  return messages.get(code) ?? messages.get(internalError)!
}
