// Runs the embedded event store in a process of its own, which loads nothing else.

export { runEngineProcess } from '#adapters/clickhouse-embedded/engine-process.ts'
