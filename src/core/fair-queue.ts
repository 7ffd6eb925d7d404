// A queue of jobs for a thread in which senders take turns: however many jobs one sender queues, the next job of another
// sender waits for at most one job of each sender. When the queue is full, the sender with the most in it loses jobs.
// Senders that may be one party form a group: first groups take turns and lose jobs, then the senders within a group.

export interface QueuedJob {
  /** Who sent the job: one sender's jobs must not delay those of another sender. */
  readonly sender: string
  /** The group of the sender, such as the network of its address; when absent, the sender is a group by itself. */
  readonly group?: string
  readonly bytes: number
}

export interface FairQueueLimits {
  readonly jobCountMax: number
  readonly bytesMax: number
}

interface Share<Job> {
  readonly jobs: Job[]
  bytes: number
}

interface Group<Job> {
  /** The queued jobs by sender, in the order of the senders' turns. Only senders with jobs. */
  readonly shares: Map<string, Share<Job>>
  jobCount: number
  bytes: number
}

export class FairQueue<Job extends QueuedJob> {
  readonly #limits: FairQueueLimits
  /** The groups that have jobs, in the order of their turns. */
  readonly #groups = new Map<string, Group<Job>>()
  #jobCount = 0
  #bytes = 0

  constructor(limits: FairQueueLimits) {
    this.#limits = limits
  }

  get jobCount(): number {
    return this.#jobCount
  }

  /**
   * Queues a job after its sender's other jobs.
   * @returns the jobs that do not fit. These are the last jobs of a group that is larger than the new job's group would
   * become, or of a sender in that group that is larger than the job's sender would become; if there are no such jobs,
   * the new job itself.
   */
  push(job: Job): Job[] {
    const refused: Job[] = []
    while (!this.#fits(job)) {
      const last = this.#lastOfLarger(job)
      if (last === undefined) return [...refused, job]
      this.remove(last)
      refused.push(last)
    }
    const groupName = groupOf(job)
    const group = this.#groups.get(groupName) ?? { shares: new Map<string, Share<Job>>(), jobCount: 0, bytes: 0 }
    const share = group.shares.get(job.sender) ?? { jobs: [], bytes: 0 }
    this.#groups.set(groupName, group)
    group.shares.set(job.sender, share)
    share.jobs.push(job)
    share.bytes += job.bytes
    group.jobCount++
    group.bytes += job.bytes
    this.#jobCount++
    this.#bytes += job.bytes
    return refused
  }

  /** Takes the first job of the next sender of the next group. Both then move to the end of their orders. */
  shift(): Job | undefined {
    const next = this.#groups.entries().next()
    if (next.done === true) return undefined
    const [groupName, group] = next.value
    const [sender, share] = group.shares.entries().next().value!
    this.#groups.delete(groupName)
    this.#groups.set(groupName, group)
    group.shares.delete(sender)
    group.shares.set(sender, share)
    const job = share.jobs[0]!
    this.remove(job)
    return job
  }

  /** Takes a job out of the queue. @returns whether it was in there. */
  remove(job: Job): boolean {
    const group = this.#groups.get(groupOf(job))
    const share = group?.shares.get(job.sender)
    if (group === undefined || share === undefined) return false
    // The last job is checked first, since a full queue removes a sender's last job.
    const index = share.jobs.at(-1) === job ? share.jobs.length - 1 : share.jobs.indexOf(job)
    if (index === -1) return false
    share.jobs.splice(index, 1)
    share.bytes -= job.bytes
    group.jobCount--
    group.bytes -= job.bytes
    this.#jobCount--
    this.#bytes -= job.bytes
    if (share.jobs.length === 0) group.shares.delete(job.sender)
    if (group.jobCount === 0) this.#groups.delete(groupOf(job))
    return true
  }

  /** Empties the queue and returns its jobs. */
  clear(): Job[] {
    const jobs: Job[] = []
    for (let job = this.shift(); job !== undefined; job = this.shift()) jobs.push(job)
    return jobs
  }

  #fits({ bytes }: Job): boolean {
    return this.#jobCount < this.#limits.jobCountMax && this.#bytes + bytes <= this.#limits.bytesMax
  }

  /**
   * The last job of the largest group, if that group is larger than the new job's group would become; else the last job
   * of the largest sender in the new job's group, if that sender is larger than the job's sender would become; else
   * undefined.
   */
  #lastOfLarger(job: Job): Job | undefined {
    const { sender, bytes } = job
    const own = this.#groups.get(groupOf(job))
    const ownWeight = this.#weight((own?.jobCount ?? 0) + 1, (own?.bytes ?? 0) + bytes)
    const [largest, weight] = this.#largest(this.#groups.values(), each => this.#weight(each.jobCount, each.bytes))
    const weightOfShare = (share: Share<Job>) => this.#weight(share.jobs.length, share.bytes)
    if (largest !== undefined && weight > ownWeight)
      return this.#largest(largest.shares.values(), weightOfShare)[0]?.jobs.at(-1)
    const ownShare = own?.shares.get(sender)
    const withIt = this.#weight((ownShare?.jobs.length ?? 0) + 1, (ownShare?.bytes ?? 0) + bytes)
    const [neighbour, neighboursWeight] = this.#largest(own?.shares.values() ?? [], weightOfShare)
    return neighboursWeight > withIt ? neighbour?.jobs.at(-1) : undefined
  }

  #largest<T>(candidates: Iterable<T>, weigh: (candidate: T) => number): [largest: T | undefined, weight: number] {
    let largest: [T | undefined, number] = [undefined, 0]
    for (const candidate of candidates) {
      const weight = weigh(candidate)
      if (weight > largest[1]) largest = [candidate, weight]
    }
    return largest
  }

  /** The used share of the job limit or of the byte limit, whichever is larger. */
  #weight(jobCount: number, bytes: number): number {
    return Math.max(jobCount / this.#limits.jobCountMax, bytes / this.#limits.bytesMax)
  }
}

const groupOf = ({ sender, group = sender }: QueuedJob): string => group
