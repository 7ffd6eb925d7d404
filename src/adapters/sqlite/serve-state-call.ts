// What a state thread does with each message. `state-writer-thread.ts` has the thread around it.

import type { ReadChanges } from '#adapters/sql/definitions/held-definitions.ts'
import { packDefinitions } from './definition-texts.ts'
import { decodeCall, encodeAnswer, type StateCalls, toFailure } from './state-writer-protocol.ts'

/**
 * Carries out a call that `encodeCall` made. A call that fails has an answer too.
 * @returns the answer, for `decodeAnswer`.
 * @throws Error for a method that is not among the calls.
 */
export async function serveStateCall(calls: StateCalls, message: string): Promise<string> {
  const { id, method, args } = decodeCall(message, calls)
  try {
    const found = await (calls[method] as (...args: unknown[]) => Promise<unknown>)(...args)
    const value = method === 'readChanges' ? packDefinitions(found as ReadChanges) : found
    return encodeAnswer({ id, value: value ?? null })
  } catch (cause) {
    return encodeAnswer({ id, failure: toFailure(cause) })
  }
}
