import { SummaryWriter } from '#core/events/batch-summary.ts'
import type { EventIdentity } from '#core/events/stored-event.ts'
import type { BatchIdentities } from '#ports/events/imported-rows.ts'

/** What a front asks about a batch of these events. */
export function askedBatch(events: readonly Omit<EventIdentity, 'projectId'>[]): BatchIdentities {
  const writer = new SummaryWriter()
  for (const event of events) writer.add({ ...event, projectId: 0 })
  return { summary: writer.summary(), listIdentities: () => events }
}
