// Opens a front's stores, except the log that it appends to, which `compose/log` opens since it closes earlier.

import type { EventStore } from '#ports/events/event-store.ts'
import type { EventLogReader, EventLogRetention } from '#ports/log/event-log.ts'
import type { PayloadCipher } from '#services/manage/payload-cipher.ts'
import { openLogReader } from '../log/log.ts'
import { openManagementStore, type StateWriter } from '../stores/state.ts'
import { openEventStore, openPayloadCipher } from '../stores/stores.ts'
import type { FrontSurroundings } from './context.ts'
import { type FrontState, openFrontState } from './state.ts'

export interface FrontStores {
  readonly management: StateWriter
  readonly state: FrontState
  readonly eventStore: EventStore
  readonly logReader: EventLogReader
  /** Measures the space that the log takes on this disk; null if the log is elsewhere. */
  readonly logSpace: Pick<EventLogRetention, 'measureSpace'> | null
  readonly payloadCipher: PayloadCipher
}

/** @param options.management the state, if it is open already; closing the stores closes this state too. */
export async function openFrontStores(
  { config, clock, logger, metrics, management }: FrontSurroundings & { readonly management?: StateWriter },
  opened: AsyncDisposableStack,
): Promise<FrontStores> {
  const stores: { close(): unknown }[] = []
  // All stores are closed at the same time, so that the waits for servers that hang overlap.
  opened.defer(async () => {
    await Promise.all(stores.map(store => store.close()))
  })
  const trackStore = <Store extends { close(): unknown }>(store: Store): Store => {
    stores.push(store)
    return store
  }
  const writer = trackStore(management ?? (await openManagementStore(config, logger)))
  const logReader = trackStore(openLogReader(config))
  return {
    management: writer,
    state: trackStore(await openFrontState({ config, logger, metrics }, writer)),
    eventStore: trackStore(openEventStore(config, clock)),
    logReader,
    logSpace: logReader,
    payloadCipher: openPayloadCipher(config),
  }
}
