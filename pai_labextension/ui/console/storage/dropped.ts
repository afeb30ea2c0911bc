// What was dropped on the browser, or chosen in its dialog: files with their places, and folders without files.

/** A file and where it belongs, as `data/train/0.png` below the folder on which it was dropped. */
export interface IChosenFile {
  readonly file: File;
  readonly path: string;
}

export interface IChosen {
  readonly files: readonly IChosenFile[];
  /** Folders that hold nothing. */
  readonly folders: readonly string[];
}

/** What a file dialog gave; a folder's files know their place in it. */
export function chosenFiles(files: Iterable<File>): IChosen {
  return { files: Array.from(files, file => ({ file, path: file.webkitRelativePath || file.name })), folders: [] };
}

/**
 * What was dropped, with all that is in dropped folders. Call it within the event: later the browser tells
 * nothing any more.
 */
export function droppedFiles(data: DataTransfer): Promise<IChosen> {
  const items = Array.from(data.items).filter(item => item.kind === 'file');
  const entries = items.map(item => item.webkitGetAsEntry());
  const plain = items.flatMap((item, index) => {
    const file = entries[index] === null ? item.getAsFile() : null;
    return file === null ? [] : [{ file, path: file.name }];
  });
  return collect(
    entries.filter(entry => entry !== null),
    plain
  );
}

async function collect(entries: FileSystemEntry[], plain: IChosenFile[]): Promise<IChosen> {
  const files = [...plain];
  const folders: string[] = [];
  const look = async (entry: FileSystemEntry, above: string): Promise<void> => {
    const path = above + entry.name;
    if (isFolder(entry)) {
      const inside = await entriesOf(entry);
      if (inside.length === 0) {
        folders.push(path);
      }
      for (const inner of inside) {
        await look(inner, `${path}/`);
      }
    } else {
      const file = await new Promise<File>((done, fail) => (entry as FileSystemFileEntry).file(done, fail));
      files.push({ file, path });
    }
  };
  for (const entry of entries) {
    await look(entry, '');
  }
  return { files, folders };
}

function isFolder(entry: FileSystemEntry): entry is FileSystemDirectoryEntry {
  return entry.isDirectory;
}

/** A reader gives some entries at a time, and none at the end. */
async function entriesOf(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const all: FileSystemEntry[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((done, fail) => reader.readEntries(done, fail));
    if (some.length === 0) {
      return all;
    }
    all.push(...some);
  }
}
