// The parts of the machine that commands need to start a part of an instance.

export { systemClock } from '#adapters/system/clock.ts'
export { readOpenFilesMax } from '#adapters/system/open-files.ts'
