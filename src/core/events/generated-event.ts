import { groupEventNames, mergeEventNames } from './event-names.ts'

/** Whether an importer may generate events of this name: those that link ids or describe groups. */
export function isGeneratedEventName(name: string): boolean {
  return mergeEventNames.has(name) || groupEventNames.has(name)
}

/**
 * Whether an importer may have generated an event of its job, with a name-based uuid. Such events have no real time, so an
 * event that another job stored earlier keeps its stored time. Source: docs/wire/import.md §2.3, §3.12.
 */
export function mayBeGeneratedEvent(name: string, uuid: string): boolean {
  return uuid[14] === '5' && isGeneratedEventName(name)
}
