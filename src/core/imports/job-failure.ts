// Why an import job that is being published or discarded does not get on, for the people who wait for it.

/** Since when the worker tries in vain, and why the last time. */
export interface JobFailure {
  /** A store and what is wrong with it, such as `event_store_unavailable`, or `internal_error`. */
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
  conflict: 'has other writers, which were first on every try',
  corrupt: 'has data that cannot be read',
  full: 'has no room for it',
} as const

/** The code of a failure of a store. @param port as adapters name it, such as `event-store`. */
export function storeFailureCode(port: string, trouble: keyof typeof troubles): string {
  const store = port.replaceAll('-', '_')
  return Object.hasOwn(stores, store) ? `${store}_${trouble}` : internalError
}

/** What went wrong is in the log of the instance, and in no answer: it may name what is nobody's business. */
export const internalError = 'internal_error'

const messages: ReadonlyMap<string, string> = new Map([
  ...Object.entries(stores).flatMap(([store, name]) =>
    Object.entries(troubles).map(([trouble, what]) => [`${store}_${trouble}`, `${name} ${what}`] as const),
  ),
  [internalError, 'the instance made a mistake, which its log has'],
])

/** A part of a sentence, such as `the event store cannot be reached`. */
export function failureMessage(code: string): string {
  return messages.get(code) ?? messages.get(internalError)!
}
