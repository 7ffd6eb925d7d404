// The deferred projects of a state in memory, for unit tests.

import { formatDeferredCursorName } from '#core/events/log-stream.ts'
import type { DeferredProjects } from '#ports/state/worker-state.ts'
import type { MemoryState } from './memory-state.ts'

export function memoryDeferredProjects(state: MemoryState): DeferredProjects {
  const isAtOffset = (cursor: string, ownerId: string, offset: number) => {
    const position = state.positions.get(cursor)
    return position?.ownerId === ownerId && position.offset === offset
  }
  return {
    async findDeferral(stream) {
      const projects = state.deferred.get(stream)
      if (projects === undefined) return null
      return { offset: state.positions.get(formatDeferredCursorName(stream))!.offset, projects }
    },

    async deferProject(stream, ownerId, projectId, offset) {
      if (!isAtOffset(stream, ownerId, offset)) return false
      const projects = state.deferred.get(stream)
      if (projects === undefined)
        state.positions.set(formatDeferredCursorName(stream), { ownerId, offset, committedAtMs: null })
      const others = projects ?? []
      const isKnown = others.some(each => each.projectId === projectId)
      if (!isKnown) state.deferred.set(stream, [...others, { projectId, fromOffset: offset }])
      return true
    },

    async releaseProjects(stream, ownerId, offset) {
      if (!isAtOffset(stream, ownerId, offset) || !isAtOffset(formatDeferredCursorName(stream), ownerId, offset))
        return false
      state.deferred.delete(stream)
      return true
    },
  }
}
