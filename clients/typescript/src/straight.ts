// Several servers may serve the boards together, each board on one of them. A call at another one is passed on, and its
// answer says whose the board is and where that server is to be reached; from then on calls of the board go straight there.
// That is only a shortcut: as soon as it fails, or the board is somebody else's, they go to the addresses that the client
// was given. If none of those is reachable, they go to any server that was named before: each passes on what is not its own.
import { BlockList, isIP } from "node:net";
import type { DescMessage, DescService, MessageInitShape } from "@bufbuild/protobuf";
import { doubled, now } from "./clock.js";
import { BoardService } from "./gen/boardd/v1/boardd_pb.js";
import { Ear } from "./silent.js";

// The headers in which a server says so.
const serverHeader = "Boardd-Server"; // who gave the answer, if not the server that was called
const publicHeader = "Boardd-Public"; // beside it: where that server is to be reached
const movedHeader = "Boardd-Moved"; // of an error: whose the board is now
const thereHeader = "Boardd-Moved-Public"; // beside it: where that server is to be reached

// Bounds of what is kept of that.
const maxBoards = 10_000;
const maxPlaces = 256;

// For how long a server is left alone at which calls could not be made: doubled each time.
const firstMs = 5000;
const mostMs = 300_000;

/** One server that said where it is to be reached. */
export interface Place {
  addr: string;
  ear: Ear;
  /** That are there. */
  boards: number;
  /** It has answered. */
  works: boolean;
  /** Whether it does. */
  asking: boolean;
  /** It is left alone. */
  until: number;
  /** How often calls failed there since one was made. */
  failed: number;
}

/** The way of one request. */
export class Way {
  /** Where it went; undefined: to one of the addresses that were given. */
  straight: Place | undefined;
  /** None of those was reachable, and straight is any server that is known. */
  around = false;
  /** It went straight, and the answer is not of the server that it was to. */
  strange = false;
  /** The answer is an error, and says whose the board is now. */
  moved = false;

  constructor(
    /** That it is about; empty: none. */
    readonly board: string,
  ) {}

  /** Reports whether a failed request may be made at another address at once: it took a shortcut, or was told of one. */
  again(repeatable: boolean): boolean {
    return this.strange || ((this.straight !== undefined || this.moved) && repeatable);
  }
}

/** The way of a request that may go straight to the server of its board. */
export function wayOf<I extends DescMessage>(method: { input: I; parent: DescService }, request: MessageInitShape<I>): Way {
  const { board } = request as { board?: unknown };
  return new Way(method.parent.typeName === BoardService.typeName && typeof board === "string" ? board : "");
}

/** Reports whether an answer is rather that of a server of other boards, or of something between, than of the one that was to be reached. */
export function strange(status: number, header: Headers): boolean {
  const form = (header.get("Content-Type") ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
  return [401, 421, 502, 504].includes(status) || status < 200 || (status >= 300 && status < 400) || !/^application\/(connect\+)?(proto|json)$/.test(form);
}

/** Reports whether an answer says who can serve, and where. */
export function namesAnother(header: Headers): boolean {
  return Boolean(header.get(publicHeader) || header.get(thereHeader));
}

/** Which boards are to be reached straight at which server. */
export class Straights {
  private readonly boards = new Map<string, Place>();
  private readonly places = new Map<string, Place>(); // by their addresses

  constructor(
    /** The addresses that the client was given. */
    private readonly given: string[],
    /** Asks an address whether there is a server, without the token; it rejects if not. */
    private readonly alive: (addr: string, signal: AbortSignal) => Promise<void>,
  ) {}

  /** Where calls of a board go straight to. */
  of(board: string): Place | undefined {
    const place = this.boards.get(board);
    if (place === undefined || place.works) return place;
    this.ask(place);
    return undefined;
  }

  /** A server that answered when it was last asked. */
  any(): Place | undefined {
    for (const place of this.places.values()) if (place.works) return place;
    return undefined;
  }

  /** Takes note of what an answer says of whose the board is. */
  learn(way: Way, status: number, header: Headers): void {
    if (this.moved(way, header)) return;
    if (header.get(serverHeader)) this.put(way.board, header.get(publicHeader) ?? "");
    else if (way.around && way.straight !== undefined && status === 200) this.give(way.board, way.straight);
    else if (status === (way.straight === undefined ? 200 : 503)) this.drop(way.board); // it is the board of the server that was called, or of nobody known
  }

  /** Reports whether a header says that the board is another server's now, and takes note of that. */
  moved(way: Way, header: Headers): boolean {
    way.moved = Boolean(header.get(movedHeader));
    if (way.moved) this.put(way.board, header.get(thereHeader) ?? "");
    return way.moved;
  }

  /** Notes that a call was answered at a server. */
  done(place: Place): void {
    place.failed = 0;
  }

  /** Notes that a call could not be made at a server. */
  fail(place: Place): void {
    if (place.works) this.leave(place);
  }

  /** Has calls of a board go to an address, once that has answered; if there is none, or it is not to be trusted, to those that were given. */
  private put(board: string, addr: string): void {
    if (this.boards.get(board)?.addr === addr) return;
    this.drop(board);
    if (!trusts(this.given, addr)) return;
    const place = this.places.get(addr) ?? this.add(addr);
    if (place === undefined) return;
    this.give(board, place);
    this.ask(place);
  }

  /** Has calls of a board go to a place. */
  private give(board: string, place: Place): void {
    this.drop(board);
    for (const other of this.boards.keys()) {
      if (this.boards.size < maxBoards) break;
      this.drop(other);
    }
    this.boards.set(board, place);
    place.boards++;
  }

  /** A place that was not known, if there is room for it. */
  private add(addr: string): Place | undefined {
    for (const [known, { boards }] of this.places) {
      if (this.places.size < maxPlaces) break;
      if (boards === 0) this.places.delete(known);
    }
    if (this.places.size >= maxPlaces) return undefined;
    const ear = new Ear((signal) => this.alive(addr, signal), () => this.fail(place));
    const place: Place = { addr, ear, boards: 0, works: false, asking: false, until: 0, failed: 0 };
    this.places.set(addr, place);
    return place;
  }

  /** Has calls of a board go to the addresses that the client was given. */
  private drop(board: string): void {
    const place = this.boards.get(board);
    if (place === undefined) return;
    this.boards.delete(board);
    place.boards--;
  }

  /** Looks whether a server can be reached, unless that is known, so that no call has to find out that it cannot. */
  private ask(place: Place): void {
    if (place.works || place.asking || now() < place.until) return;
    place.asking = true;
    void place.ear.alive().then((works) => {
      place.asking = false;
      if (works) place.works = true;
      else this.leave(place);
    });
  }

  /** Leaves a server alone for a while. */
  private leave(place: Place): void {
    place.works = false;
    place.until = now() + doubled(place.failed++, firstMs, mostMs);
  }
}

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("0.0.0.0", "ipv4");
loopback.addAddress("::1", "ipv6");
loopback.addAddress("::", "ipv6");

/**
 * Reports whether the token may be sent to an address that one of the servers has named. It came with the answer to a call
 * that brought the token, so whoever named it has the token already; what remains is that nobody else sees it on the way.
 * So the connection is as safe as all those of the client's own addresses, and nothing on the client's own machine is
 * called because a server far away speaks of its own.
 */
export function trusts(given: string[], addr: string): boolean {
  // A scheme, a host and perhaps a port, and nothing else. The host is a name or an IP address, and not what only some
  // resolvers take for an address, such as 127.1.
  const named = /^(https?):\/\/(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]+)?$/i.exec(addr);
  if (named === null || !URL.canParse(addr)) return false;
  const [, scheme = "", host = ""] = named;
  if (!host.startsWith("[") && isIP(host) === 0 && /(^|\.)([0-9]+|0x[^.]*)\.?$/i.test(host)) return false;
  const urls = given.map((own) => new URL(own));
  if (scheme.toLowerCase() !== "https" && urls.some(({ protocol }) => protocol === "https:")) return false;
  return !onLoopback(host) || urls.some(({ hostname }) => onLoopback(hostname));
}

/** Reports whether a host is the machine itself. */
function onLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
  if (name === "localhost" || name.endsWith(".localhost")) return true;
  const version = isIP(name);
  return version !== 0 && loopback.check(name, version === 4 ? "ipv4" : "ipv6");
}
