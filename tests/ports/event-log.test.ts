import { openSqliteLogReader } from '#adapters/sqlite-log/sqlite-log-reader.ts'
import { openSqliteLogWriter } from '#adapters/sqlite-log/sqlite-log-writer.ts'
import { createMemoryEventLog, memoryLogStorage } from '../support/memory/memory-event-log.ts'
import { tempDir } from '../support/temp-dir.ts'
import { eventLogContract } from './event-log.contract.ts'

eventLogContract('memory', () => {
  const storage = memoryLogStorage()
  return {
    open: async options => {
      const log = createMemoryEventLog({ storage, nowMs: Date.now, ...options })
      return { writer: log, reader: log }
    },
  }
})

eventLogContract('memory with offsets that are never used', () => {
  const storage = memoryLogStorage()
  return {
    open: async options => {
      const log = createMemoryEventLog({ storage, nowMs: Date.now, gapAfter: offset => offset % 4, ...options })
      return { writer: log, reader: log }
    },
  }
})

eventLogContract('sqlite-log', t => {
  const folder = tempDir(t)
  return {
    open: async options => ({
      writer: await openSqliteLogWriter({ folder, nowMs: Date.now, logBytesMax: 2 ** 40, ...options }),
      reader: openSqliteLogReader({ folder, logBytesMax: 2 ** 40, pollMs: 10 }),
    }),
  }
})
